import org.apache.hadoop.hive.conf.HiveConf;
import org.apache.hadoop.hive.metastore.HiveMetaStore;
import org.apache.hadoop.hive.metastore.txn.TxnDbUtil;

/** A Hive Metastore whose database has the tables of the locks, which a tool that is not in Spark's jars would make. */
public class Metastore {
  public static void main(String[] args) throws Throwable {
    TxnDbUtil.prepDb(new HiveConf());
    HiveMetaStore.main(args);
  }
}
